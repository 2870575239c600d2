//! Whether a pattern, as it is written, names characters outside ASCII.
//!
//! **Invariant:** a wildcard or class that only includes such characters, such as `.`, `\w` or
//! `[^a]`, names none. Literals, escapes, ranges and properties name what they are written with.
//! This module knows no file.

use regex_syntax::ast::{self, Ast, ClassSetItem, Visitor};

/// Reports whether a regular expression names characters outside ASCII.
pub(super) fn is_in(pattern: &str) -> bool {
    // Without an escape what is ASCII names nothing else.
    if pattern.is_ascii() && !pattern.contains('\\') {
        return false;
    }
    let parsed = ast::parse::Parser::new().parse(pattern);
    parsed.is_ok_and(|ast| ast::visit(&ast, Foreign(false)).unwrap_or_default())
}

/// Looks until it has met one.
struct Foreign(bool);

impl Visitor for Foreign {
    type Output = bool;
    type Err = ();

    fn finish(self) -> Result<bool, ()> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), ()> {
        self.0 |= match ast {
            Ast::Literal(literal) => !literal.c.is_ascii(),
            Ast::ClassUnicode(_) => true,
            _ => false,
        };
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), ()> {
        self.0 |= match item {
            ClassSetItem::Literal(literal) => !literal.c.is_ascii(),
            ClassSetItem::Range(range) => !range.end.c.is_ascii(),
            ClassSetItem::Unicode(_) => true,
            _ => false,
        };
        Ok(())
    }
}
