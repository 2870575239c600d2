//! The parameters of a control sequence (ECMA-48, 5.4).
//!
//! **Invariant:** numbers saturate; the body has a bound, so the fields have one. **Does not
//! know:** what a parameter means.

/// A body as `marker fields intermediate`. Fields are separated by `;`, their parts by `:`.
#[derive(Debug, Default)]
pub struct Params {
    /// The private marker, one of `<=>?`.
    pub marker: Option<u8>,
    /// The last intermediate byte.
    pub intermediate: Option<u8>,
    /// The fields; none at all if the body has no parameter. A part without digits is `None`.
    pub fields: Vec<Vec<Option<u32>>>,
}

impl Params {
    /// Reads the bytes between the introducer and the final byte. None if they are not of this
    /// form.
    pub fn read(body: &[u8]) -> Option<Self> {
        let mut params = Self::default();
        let mut body = body;
        if let Some((&marker @ b'<'..=b'?', rest)) = body.split_first() {
            (params.marker, body) = (Some(marker), rest);
        }
        let end = body.iter().position(|b| matches!(b, b' '..=b'/')).unwrap_or(body.len());
        let (numbers, intermediates) = body.split_at(end);
        params.intermediate = intermediates.last().copied();
        if !numbers.iter().all(|b| matches!(b, b'0'..=b';'))
            || !intermediates.iter().all(|b| matches!(b, b' '..=b'/'))
        {
            return None;
        }
        if !numbers.is_empty() {
            let fields = numbers.split(|b| *b == b';');
            params.fields = fields.map(|f| f.split(|b| *b == b':').map(number).collect()).collect();
        }
        Some(params)
    }

    /// A part of a field, if it is there and not empty.
    pub fn part(&self, field: usize, part: usize) -> Option<u32> {
        self.fields.get(field)?.get(part).copied().flatten()
    }

    /// The first part of a field.
    pub fn number(&self, field: usize) -> Option<u32> {
        self.part(field, 0)
    }

    /// True if a field has several parts.
    pub fn has_parts(&self) -> bool {
        self.fields.iter().any(|f| f.len() > 1)
    }
}

/// The number that ASCII digits write. None if there are none.
pub fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |n: u32, d: &u8| n.saturating_mul(10).saturating_add(u32::from(d - b'0'));
    Some(digits.iter().fold(0, add))
}
