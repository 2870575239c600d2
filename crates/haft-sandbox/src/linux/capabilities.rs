//! The capabilities of a process.

use std::io;

use rustix::{
    io::Errno,
    thread::{
        CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

/// What of root's capabilities is left: those over files and other users' processes, without which
/// root could do less than anybody else.
const LEFT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Gives up every capability but those that are [`LEFT`] of what it `has`, and the ways to gain others.
pub(super) fn give_up(left: bool) -> io::Result<()> {
    let left = if left { LEFT } else { CapabilitySet::empty() };
    set_no_new_privs(true)?;
    // Refused on kernels without ambient capabilities, where there is nothing to clear.
    let _ = clear_ambient_capability_set();
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if left.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // INVAL: the kernel knows no more of them. PERM: an ordinary user, who has none to give up,
            // and can gain none any more.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let now = capabilities(None)?;
    let (effective, permitted) = (now.effective & left, now.permitted & left);
    let sets = CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    Ok(())
}
