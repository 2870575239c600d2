//! The hosts through their public interface.

mod files;
