//! Pages, as people meet them and as somebody hostile would write them.

#[cfg(test)]
mod charset;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod score;
