//! SHA-1, by which git names its objects. No security here depends on it.
//!
//! Source: FIPS 180-4, section 6.1.

/// The hash of some pieces in a row.
pub(super) fn sha1(pieces: &[&[u8]]) -> [u8; 20] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let (mut block, mut filled) = ([0; 64], 0);
    let mut end = vec![0x80];
    let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
    end.resize(1 + usize::try_from((119 - bytes % 64) % 64).unwrap_or_default(), 0);
    end.extend_from_slice(&(bytes * 8).to_be_bytes());
    for mut piece in pieces.iter().copied().chain([&*end]) {
        while !piece.is_empty() {
            let some = piece.len().min(block.len() - filled);
            block[filled..filled + some].copy_from_slice(&piece[..some]);
            (piece, filled) = (&piece[some..], filled + some);
            if filled == block.len() {
                turn(&mut state, &block);
                filled = 0;
            }
        }
    }
    let mut hash = [0; 20];
    for (part, word) in hash.chunks_exact_mut(4).zip(state) {
        part.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

#[expect(clippy::many_single_char_names, reason = "the letters of the standard")]
fn turn(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..80 {
        let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
        words[at] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.into_iter().enumerate() {
        let (mix, constant) = match at {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc_u32),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a.rotate_left(5).wrapping_add(mix).wrapping_add(e);
        let next = next.wrapping_add(constant).wrapping_add(word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d, e]) {
        *old = old.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn text(pieces: &[&[u8]]) -> String {
        sha1(pieces).iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(text(&[]), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(text(&[b"a", b"", b"bc"]), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let two = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(text(&[two]), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        let million = vec![b'a'; 1_000_000];
        assert_eq!(text(&[&million]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
        // Wherever it is cut, and whatever is left for the last block.
        for len in 0..200 {
            let whole = vec![b'x'; len];
            assert_eq!(sha1(&[&whole]), sha1(&[&whole[..len / 3], &whole[len / 3..]]), "{len}");
        }
    }
}
