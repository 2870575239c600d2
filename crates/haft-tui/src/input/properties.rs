//! Properties of the parser for any input.
