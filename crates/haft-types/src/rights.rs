//! What a file is beside its content.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Owner, permissions and extended attributes of a file: enough to restore them.
///
/// In a receipt its fields stand among those of the receipt; older receipts have the mode alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Permission bits, those for other users and groups on execution among them.
    pub mode: u32,
    /// Ids of the owning user and group; none where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u32, u32)>,
    /// Extended attributes by name, as hexadecimal digits; a list of rights is one of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, String>,
}

impl Rights {
    /// Permission bits alone.
    pub const fn of_mode(mode: u32) -> Self {
        Self { mode, owner: None, attributes: BTreeMap::new() }
    }

    /// Adds an extended attribute.
    pub fn note(&mut self, name: impl Into<String>, value: &[u8]) {
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
        let digits = value.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        self.attributes.insert(name.into(), digits);
    }

    /// The extended attributes: name and value. A malformed one is left out.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, Vec<u8>)> {
        self.attributes.iter().filter_map(|(name, digits)| {
            let half = |digit: &u8| char::from(*digit).to_digit(16);
            let byte = |pair: &[u8]| match pair {
                [high, low] => u8::try_from(half(high)? * 16 + half(low)?).ok(),
                _ => None,
            };
            let value: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
            Some((name.as_str(), value?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostPath, Receipt, ReceiptAction, Style};

    #[test]
    fn rights_stand_among_the_fields_of_a_receipt_and_old_ones_are_read() {
        let path = HostPath::new(b"/a", Style::Posix).unwrap();
        let mut receipt = Receipt::new("local", path, ReceiptAction::Deleted);
        let bare = serde_json::to_value(&receipt).unwrap();
        assert_eq!(serde_json::from_value::<Receipt>(bare.clone()).unwrap(), receipt);
        assert_eq!(bare.get("mode"), None);
        let every: Vec<u8> = (0..=255).collect();
        let mut rights = Rights { owner: Some((1, 2)), ..Rights::of_mode(0o640) };
        rights.note("user.k", &every);
        rights.note("user.empty", b"");
        receipt.rights = Some(rights.clone());
        let mut written = serde_json::to_value(&receipt).unwrap();
        assert_eq!((&written["mode"], &written["owner"][1]), (&0o640.into(), &2.into()));
        assert_eq!(serde_json::from_value::<Receipt>(written.clone()).unwrap(), receipt);
        let attributes: Vec<_> = rights.attributes().collect();
        assert_eq!(attributes, [("user.empty", vec![]), ("user.k", every)]);
        for newer in ["owner", "attributes"] {
            written.as_object_mut().unwrap().remove(newer);
        }
        let old = serde_json::from_value::<Receipt>(written).unwrap();
        assert_eq!(old.rights, Some(Rights::of_mode(0o640)));
    }
}
