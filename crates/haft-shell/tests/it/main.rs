//! What bash itself reads, beside what is read here.

#[cfg(test)]
mod bash;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod effects;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod long;
#[cfg(test)]
mod quoting;
