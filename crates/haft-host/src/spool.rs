//! Output without end in fixed memory.
