//! The engine through its public interface.

#[cfg(test)]
mod edits;
#[cfg(test)]
mod encoding_properties;
#[cfg(test)]
mod line_ends;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod regions;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tolerances;
#[cfg(test)]
mod two_ways;
