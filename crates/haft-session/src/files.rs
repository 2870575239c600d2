//! Private folders and files: 0700 and 0600 where the system has permission bits.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io,
    path::Path,
};

/// Creates a folder and its missing parents; one that is there is left as it is.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Options for a file that only its owner may open.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// What is known of a regular file: opening anything else, as a pipe, might never come back.
pub(crate) fn regular(path: &Path) -> io::Result<Metadata> {
    let data = fs::metadata(path)?;
    if data.is_file() {
        return Ok(data);
    }
    Err(io::Error::other("it is no regular file: move it away"))
}

/// Makes names that were created in a folder survive a power cut.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}
