//! haft-render.
