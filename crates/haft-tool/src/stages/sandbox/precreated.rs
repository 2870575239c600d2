//! Paths outside the sandbox that a command may create, and that do not exist yet. They are created
//! empty, so that the command can be given them without their parent folder.
//!
//! **Invariant:** a path that the command left as it was created is removed again.

use haft_host::{Expect, FileKind, Fs, Host, Located, NewEntry, WriteHow};
use haft_policy::makes_file;
use haft_types::{Access, Follow, Target};

use crate::Call;

/// What was made for a call.
#[derive(Default)]
pub(super) struct Places(Vec<Located>);

impl Places {
    /// Makes what is missing; where that fails, the command says so itself.
    pub(super) async fn make(call: &mut Call) -> Self {
        let mut all = Self::default();
        let host = call.cx.dispatcher.host.clone();
        let (Some(walls), Some(plan)) = (&call.walls, call.plan()) else { return all };
        let mut made = Vec::new();
        for (number, (effect, located)) in plan.effects.iter().zip(&call.located).enumerate() {
            let Some(Ok(found)) = located else { continue };
            let missing = found.kind == FileKind::Missing && !walls.holds(&found.real);
            if effect.access == Access::Observe || !missing {
                continue;
            }
            let done = match &effect.target {
                Target::Tree { .. } => folder(&*host, found).await,
                Target::Path { .. } if makes_file(effect, plan, host.home()) => {
                    file(host.fs(), found).await
                }
                _ => None,
            };
            made.extend(done.map(|done| (number, done)));
        }
        for (number, done) in made {
            all.0.push(done.clone());
            call.located[number] = Some(Ok(done));
        }
        all
    }

    /// Removes what was left as it is.
    pub(super) async fn clear(self, host: &dyn Host) {
        for made in self.0 {
            let now = host.fs().locate(&made.real, Follow::No).await.ok();
            if let Some(now) = now.filter(|now| now.stamp == made.stamp) {
                let _ = host.fs().remove(&now).await;
            }
        }
    }
}

async fn file(fs: &dyn Fs, at: &Located) -> Option<Located> {
    let how = WriteHow { expect: Expect::Absent, ..WriteHow::default() };
    fs.write(at, bytes::Bytes::new(), how).await.ok().map(|written| written.at)
}

async fn folder(host: &dyn Host, at: &Located) -> Option<Located> {
    host.surveys()?.make(at, NewEntry::Folder).await.ok()?;
    host.fs().locate(&at.real, Follow::No).await.ok()
}
