//! The protocol between haft and the monitor of a command, over a stream of their own.
//!
//! A frame is a length of 4 bytes (little-endian, as all numbers here), then a kind, then its data.
//! Both ends are always the same program, so there are no versions.

use std::io::{self, Read, Write};

use haft_sandbox::{Attempts, Level, Limits};
use serde::{Deserialize, Serialize};

/// Longest frame; a command of 128 KiB and its environment are far below it.
const FRAME_LIMIT: usize = 16 << 20;

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// The file that is run.
    pub(super) file: Vec<u8>,
    /// The name it goes by and its arguments.
    pub(super) words: Vec<Vec<u8>>,
    /// Its whole environment, as `NAME=VALUE`.
    pub(super) environment: Vec<Vec<u8>>,
    /// The folder it starts in.
    pub(super) cwd: Vec<u8>,
    /// What holds it; none: nothing.
    pub(super) hold: Option<Hold>,
    /// A file that its shell reads first and could not open once it is held; empty: none. It finds it open
    /// as [`START_UP`].
    pub(super) start_up: Vec<u8>,
}

/// The number of a descriptor that no script has a reason to use.
pub(super) const START_UP: i32 = 100;

/// What a process takes on before it becomes the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Hold {
    /// These limits, by this level.
    To(Level, Limits),
    /// There is no program: it tries in its folder what this level holds, and says that.
    Probe(Level),
    /// There is no program: it tries whether it sees overlays with these limits, in namespaces, and says
    /// so.
    Overlays(Limits),
    /// There is no program: it makes a network that programs share, and hands that on.
    Network,
}

/// What haft says to a keeper after the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// The command ended: end what it left, and say what that was. Names in front of it
    /// ([`sparing`]) are those of programs that go on.
    Clear = 1,
    /// End everything: TERM, then KILL.
    Stop = 2,
    /// KILL everything.
    Kill = 3,
}

impl Order {
    pub(super) const fn of(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Clear),
            2 => Some(Self::Stop),
            3 => Some(Self::Kill),
            _ => None,
        }
    }
}

/// What begins the names that are told before [`Order::Clear`].
const SPARING: u8 = 4;
/// Says that [`MonitorEvent::Tried`] came.
pub(super) const HEARD: u8 = 5;
/// Most bytes of all of them.
const SPARED: usize = 32 << 10;

/// Says that programs of these names go on when a command ends.
pub(super) fn sparing(names: &[String]) -> Vec<u8> {
    let mut said = vec![SPARING, 0, 0, 0, 0];
    for name in names {
        if said.len() + name.len() < SPARED {
            said.extend([name.as_bytes(), b"\0"].concat());
        }
    }
    let length = u32::try_from(said.len() - 5).unwrap_or(0);
    said[1..5].copy_from_slice(&length.to_le_bytes());
    said
}

/// What a keeper is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MonitorRequest {
    Order(Order),
    /// Names of programs that go on.
    Sparing(Vec<Vec<u8>>),
    /// What was said of the network came, so that more of it may be said.
    Heard,
}

impl MonitorRequest {
    /// Takes the first whole one off what was received.
    pub(super) fn take(received: &mut Vec<u8>) -> Option<Self> {
        loop {
            let (first, rest) = received.split_first()?;
            let (said, length) = match Order::of(*first) {
                Some(order) => (Some(Self::Order(order)), 1),
                None if *first == SPARING => {
                    let names = Parts(rest).bytes()?;
                    let length = 5 + names.len();
                    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
                    (Some(Self::Sparing(names.map(<[u8]>::to_vec).collect())), length)
                }
                None if *first == HEARD => (Some(Self::Heard), 1),
                None => (None, 1),
            };
            received.drain(..length);
            if said.is_some() {
                return said;
            }
        }
    }
}

/// What a keeper says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MonitorEvent {
    /// It runs, as this process; then the first process of its namespaces, or 0.
    Started(u32, u32),
    /// It could not be started: a number of the system, and words where it could not be held.
    Failed(i32, String),
    /// The command itself ended, with the system's status; what it left may still run.
    Exited(i32),
    /// Nothing of it is left; what was stopped after it ended.
    Gone(Vec<(u32, String)>),
    /// These do not end, not even killed; they are still watched.
    Stuck(Vec<(u32, String)>),
    /// What was stopped after the command ended, and what goes on.
    Kept(Vec<(u32, String)>, Vec<(u32, String)>),
    /// What was tried of the network by now. The next is said only once this was heard, or the command has
    /// ended: there may be any number.
    Tried(Attempts),
}

impl Request {
    /// Sends it.
    pub(super) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let mut frame = Frame::new(0);
        frame.bytes(&self.file);
        frame.bytes(&self.cwd);
        // Nothing to be held by is said quickly: most programs have nothing.
        let hold = self.hold.as_ref().map(serde_json::to_vec).transpose()?;
        frame.bytes(&hold.unwrap_or_default());
        frame.bytes(&self.start_up);
        for list in [&self.words, &self.environment] {
            frame.number(u32::try_from(list.len()).unwrap_or(u32::MAX));
            for item in list {
                frame.bytes(item);
            }
        }
        frame.send(to)
    }

    /// Waits for one.
    pub(super) fn receive(from: &mut impl Read) -> io::Result<Self> {
        let frame = read_frame(from)?;
        Self::read(&mut Parts(&frame)).ok_or_else(damaged)
    }

    fn read(parts: &mut Parts<'_>) -> Option<Self> {
        // There is one kind.
        parts.byte()?;
        Some(Self {
            file: parts.bytes()?,
            cwd: parts.bytes()?,
            hold: match parts.bytes()? {
                none if none.is_empty() => None,
                hold => Some(serde_json::from_slice(&hold).ok()?),
            },
            start_up: parts.bytes()?,
            words: parts.list(Parts::bytes)?,
            environment: parts.list(Parts::bytes)?,
        })
    }
}

impl MonitorEvent {
    /// Sends it.
    pub(super) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let numbered = |kind, number: u32| {
            let mut frame = Frame::new(kind);
            frame.number(number);
            frame
        };
        let listed = |kind, lists: &[&[(u32, String)]]| {
            let mut frame = Frame::new(kind);
            for list in lists {
                frame.number(u32::try_from(list.len()).unwrap_or(u32::MAX));
                for (id, line) in *list {
                    frame.number(*id);
                    frame.bytes(line.as_bytes());
                }
            }
            frame
        };
        let frame = match self {
            Self::Started(id, first) => {
                let mut frame = numbered(1, *id);
                frame.number(*first);
                frame
            }
            Self::Failed(code, why) => {
                let mut frame = numbered(2, code.cast_unsigned());
                frame.bytes(why.as_bytes());
                frame
            }
            Self::Exited(status) => numbered(3, status.cast_unsigned()),
            Self::Gone(list) => listed(4, &[list]),
            Self::Stuck(list) => listed(5, &[list]),
            Self::Kept(stopped, kept) => listed(6, &[stopped, kept]),
            Self::Tried(attempts) => {
                let mut frame = Frame::new(7);
                frame.bytes(&attempts.to_bytes());
                frame
            }
        };
        frame.send(to)
    }

    /// Takes the first whole one off what was received.
    pub(super) fn take(received: &mut Vec<u8>) -> io::Result<Option<Self>> {
        let Some(length) = received.first_chunk::<4>() else { return Ok(None) };
        let end = 4 + checked(u32::from_le_bytes(*length))?;
        let Some(frame) = received.get(4..end) else { return Ok(None) };
        let told = Self::read(frame).ok_or_else(damaged)?;
        received.drain(..end);
        Ok(Some(told))
    }

    fn read(frame: &[u8]) -> Option<Self> {
        let mut parts = Parts(frame);
        let kind = parts.byte()?;
        let text =
            |parts: &mut Parts<'_>| Some(String::from_utf8_lossy(&parts.bytes()?).into_owned());
        let process = |parts: &mut Parts<'_>| Some((parts.number()?, text(parts)?));
        Some(match kind {
            1 => Self::Started(parts.number()?, parts.number()?),
            2 => Self::Failed(parts.number()?.cast_signed(), text(&mut parts)?),
            3 => Self::Exited(parts.number()?.cast_signed()),
            4 => Self::Gone(parts.list(process)?),
            5 => Self::Stuck(parts.list(process)?),
            6 => Self::Kept(parts.list(process)?, parts.list(process)?),
            7 => Self::Tried(Attempts::from_bytes(&parts.bytes()?)?),
            _ => return None,
        })
    }
}

/// A frame that is being made.
struct Frame(Vec<u8>);

impl Frame {
    fn new(kind: u8) -> Self {
        Self(vec![0, 0, 0, 0, kind])
    }

    fn number(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.0.extend_from_slice(bytes);
    }

    fn send(mut self, to: &mut impl Write) -> io::Result<()> {
        let length = u32::try_from(self.0.len() - 4).unwrap_or(u32::MAX);
        checked(length)?;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        to.write_all(&self.0)
    }
}

/// What of a frame is not read yet.
struct Parts<'a>(&'a [u8]);

impl Parts<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| read(self)).collect()
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first.to_vec())
    }
}

fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut frame = vec![0; checked(u32::from_le_bytes(length))?];
    from.read_exact(&mut frame)?;
    Ok(frame)
}

fn checked(length: u32) -> io::Result<usize> {
    let length = usize::try_from(length).ok().filter(|length| *length <= FRAME_LIMIT);
    length.ok_or_else(|| {
        let text = format!("a command with its environment has more than {FRAME_LIMIT} bytes");
        io::Error::new(io::ErrorKind::ArgumentListTooLong, text)
    })
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message about a command is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let request = Request {
            file: b"/bin/\xff".to_vec(),
            words: vec![b"sh".to_vec(), Vec::new(), b"a\nb".to_vec()],
            environment: vec![b"A=1=2".to_vec()],
            cwd: b"/".to_vec(),
            hold: Some(Hold::To(Level::Landlock, Limits { sockets: true, ..Limits::default() })),
            start_up: b"/x".to_vec(),
        };
        let mut bytes = Vec::new();
        let free = Request { hold: None, ..request.clone() };
        free.send(&mut bytes).unwrap();
        assert_eq!(Request::receive(&mut bytes.as_slice()).unwrap(), free);
        bytes.clear();
        request.send(&mut bytes).unwrap();
        assert_eq!(Request::receive(&mut bytes.as_slice()).unwrap(), request);
        for end in 0..bytes.len() {
            assert!(Request::receive(&mut &bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn words_of_a_keeper_arrive_in_any_pieces() {
        let left = vec![(7, "sleep 1000".to_owned()), (9, String::new())];
        let all = [
            MonitorEvent::Started(4_000_000_000, 7),
            MonitorEvent::Tried(Attempts { refused: 1 << 40, sockets: 3, ..Attempts::default() }),
            MonitorEvent::Failed(-2, String::new()),
            MonitorEvent::Failed(5, "Landlock: no".to_owned()),
            MonitorEvent::Exited(-1),
            MonitorEvent::Gone(left.clone()),
            MonitorEvent::Gone(Vec::new()),
            MonitorEvent::Kept(left.clone(), vec![(1, "x".to_owned())]),
            MonitorEvent::Stuck(left),
        ];
        let mut bytes = Vec::new();
        for told in &all {
            told.send(&mut bytes).unwrap();
        }
        for step in [1, 3, bytes.len()] {
            let (mut received, mut told) = (Vec::new(), Vec::new());
            for piece in bytes.chunks(step) {
                received.extend_from_slice(piece);
                while let Some(next) = MonitorEvent::take(&mut received).unwrap() {
                    told.push(next);
                }
            }
            assert_eq!(told, all, "{step}");
        }
        let names = ["a".to_owned(), "x".repeat(SPARED), "b c".to_owned()];
        let said = [&[2][..], &sparing(&names), &[99, HEARD, 1]].concat();
        for step in [1, 7, said.len()] {
            let (mut received, mut heard) = (Vec::new(), Vec::new());
            for piece in said.chunks(step) {
                received.extend_from_slice(piece);
                heard.extend(std::iter::from_fn(|| MonitorRequest::take(&mut received)));
            }
            let spared = MonitorRequest::Sparing(vec![b"a".to_vec(), b"b c".to_vec()]);
            let orders = [Order::Stop, Order::Clear].map(MonitorRequest::Order);
            let all = [orders[0].clone(), spared, MonitorRequest::Heard, orders[1].clone()];
            assert_eq!(heard, all, "{step}");
        }
        assert!(MonitorEvent::take(&mut vec![1, 0, 0, 0, 99]).is_err());
        assert!(MonitorEvent::take(&mut vec![255; 4]).is_err());
    }
}
