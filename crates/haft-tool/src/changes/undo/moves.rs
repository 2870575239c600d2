//! Undo for renamed files: they are moved back, so that they keep their owner, their rights and
//! whatever else is not part of the content.
//!
//! **Invariant:** a file is moved only onto a free name. A file that cannot be moved so, as in a
//! cycle, is written anew.

use std::{collections::BTreeMap, io};

use bytes::Bytes;
use haft_host::FileKind;
use haft_types::{Blob, Hash, HostPath, Receipt, ReceiptAction};

use super::{Now, Restore, Step, Undo, folders::Folders, remove_folder};

/// Most bytes that a moved file gets: more is written piece by piece, as a new file.
pub(crate) const WHOLE: u64 = 64 << 20;

/// One file that is moved back.
pub(super) struct Move {
    pub(super) from: HostPath,
    pub(super) to: HostPath,
    /// What it held before, and holds then.
    hashes: (Hash, Hash),
    /// What it holds then; none where that stays as it is.
    data: Option<Blob>,
    /// True where an undo that was cut off has made it.
    is_done: bool,
}

/// The moves that can be made, in an order in which each name is free when its turn comes.
pub(super) fn of(
    steps: &BTreeMap<HostPath, Step>,
    folders: &Folders,
    now: &BTreeMap<HostPath, Now>,
) -> Vec<Move> {
    let mut moves: Vec<Move> = Vec::new();
    // A folder goes only after what is moved.
    let folder = |now: &Now| now.at.as_ref().is_some_and(|at| at.kind == FileKind::FOLDER);
    let there =
        |path: &HostPath| now.get(path).is_some_and(|now| now.found.is_some() || folder(now));
    loop {
        let left = |path: &HostPath| moves.iter().any(|moved| moved.from == *path);
        let taken = |path: &HostPath| moves.iter().any(|moved| moved.to == *path);
        let next = steps.iter().find_map(|(path, step)| {
            // Where a folder is to be made nothing can wait for its turn.
            let stays = |holder: &&HostPath| *holder != path && !folders.contains_key(*holder);
            let holder = step.file.as_ref().filter(stays)?;
            let data = match &step.to {
                Restore::Content(blob) if blob.len <= WHOLE => Some(blob.clone()),
                Restore::From(_) => None,
                Restore::Content(_) | Restore::Link(_) | Restore::Nothing => return None,
            };
            let found = now.get(holder).and_then(|now| now.found);
            let before = found.or(steps.get(holder)?.left)?;
            let hashes = (before, data.as_ref().map_or(before, |blob| blob.hash));
            let is_done = found.is_none() && now.get(path)?.found == Some(hashes.1);
            let free = !there(path) || left(path);
            let can_be = found.is_some() && !left(holder) && free;
            let data = data.filter(|_| hashes.0 != hashes.1);
            let (from, to) = (holder.clone(), path.clone());
            let one = Move { from, to, hashes, data, is_done };
            (!taken(path) && (is_done || can_be)).then_some(one)
        });
        match next {
            Some(next) => moves.push(next),
            None => return moves,
        }
    }
}

impl Undo<'_> {
    /// Makes the moves, and adds the receipt of each.
    pub(super) async fn move_all(
        &self,
        moves: &[Move],
        now: &BTreeMap<HostPath, Now>,
        receipts: &mut Vec<Receipt>,
    ) -> Result<(), (HostPath, io::Error)> {
        for moved in moves {
            let receipt = self.move_one(moved, now).await;
            receipts.push(receipt.map_err(|error| (moved.to.clone(), error))?);
        }
        Ok(())
    }

    /// Makes a move; one that is made already gives the receipt that it would have given.
    async fn move_one(&self, moved: &Move, now: &BTreeMap<HostPath, Now>) -> io::Result<Receipt> {
        let Move { from, to, hashes: (before, after), data, is_done } = moved;
        let was = &now[from];
        let action = ReceiptAction::Renamed { from: from.clone() };
        let mut receipt = Receipt::new(self.host.name().to_owned(), to.clone(), action);
        (receipt.before, receipt.after) = (Some(*before), Some(*after));
        if *is_done {
            receipt.pre_image = self.pre_images.find(before);
            receipt.rights.clone_from(&now[to].rights);
            return Ok(receipt);
        }
        let content = data.as_ref().map(|blob| self.pre_images.get(blob)).transpose()?;
        receipt.pre_image.clone_from(&was.kept);
        receipt.rights.clone_from(&was.rights);
        let at = self.own(to).await?;
        let held = was.at.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let staged = self.host.fs().stage_move(held, &at, content).await?;
        receipt.made = staged.place().await?.made;
        Ok(receipt)
    }

    /// Goes back on a move, to where the file was, and what it held there.
    pub(super) async fn move_back(
        &self,
        receipt: &Receipt,
        from: &HostPath,
        was: &Now,
    ) -> io::Result<()> {
        if was.found.is_none() {
            // It was made before.
            return Ok(());
        }
        let (at, to) = (self.own(&receipt.path).await?, self.own(from).await?);
        let old = |()| -> io::Result<Bytes> {
            self.pre_images.get(was.kept.as_ref().ok_or(io::ErrorKind::NotFound)?)
        };
        let data = (receipt.before != receipt.after).then_some(()).map(old).transpose()?;
        self.host.fs().stage_move(&at, &to, data).await?.place().await?;
        for folder in receipt.made.iter().rev() {
            drop(remove_folder(self.host.fs(), folder).await);
        }
        Ok(())
    }
}
