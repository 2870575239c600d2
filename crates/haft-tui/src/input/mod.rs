//! Bytes of a terminal as keys, pastes, focus and answers.
