//! The `#[test]` of the integration tests.
//!
//! Rust's own test harness decides at compile time which tests are ignored. Whether this machine has a GPU,
//! a compiler for its kernels or a folder of real matrices is known only at run time, so the test binaries
//! run under `tests/common/harness.rs`. In a test binary with `#[macro_use] extern crate
//! solver_test_attribute;`, this attribute replaces the `#[test]` of the standard library in all modules:
//! the function is unchanged and is registered with that harness. `#[ignore]` and `#[ignore = "reason"]`
//! below `#[test]` have their usual meaning.

use proc_macro::{TokenStream, TokenTree};

/// Registers a function without arguments as a test.
#[proc_macro_attribute]
pub fn test(_arguments: TokenStream, function: TokenStream) -> TokenStream {
    let Some((kept, name, ignored)) = split(function) else {
        return r#"compile_error!("`#[test]` belongs above a function");"#.parse().unwrap_or_default();
    };
    let registration = format!(
        "::inventory::submit! {{
            crate::common::harness::Test {{
                name: ::std::concat!(::std::module_path!(), \"::{name}\"),
                run: {name},
                ignored: {ignored},
            }}
        }}"
    );
    let registration: TokenStream = registration.parse().unwrap_or_default();
    kept.into_iter().chain(registration).collect()
}

/// Returns the function without `#[ignore]`, its name, and the reason to ignore it as an
/// expression of type `Option<&str>`.
fn split(function: TokenStream) -> Option<(Vec<TokenTree>, String, String)> {
    let (mut kept, mut name, mut ignored) = (Vec::new(), None, "None".to_owned());
    let mut tokens = function.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if let (TokenTree::Punct(hash), Some(TokenTree::Group(attribute))) = (&token, tokens.peek())
            && hash.as_char() == '#'
            && let Some(reason) = ignore_reason(attribute.stream())
        {
            ignored = format!("Some({reason})");
            tokens.next();
            continue;
        }
        if name.is_none()
            && let (TokenTree::Ident(keyword), Some(TokenTree::Ident(after))) = (&token, tokens.peek())
            && keyword.to_string() == "fn"
        {
            name = Some(after.to_string());
        }
        kept.push(token);
    }
    Some((kept, name?, ignored))
}

/// Returns the reason in `ignore = "reason"` as a literal; none for any other attribute.
fn ignore_reason(attribute: TokenStream) -> Option<String> {
    let mut tokens = attribute.into_iter();
    match tokens.next() {
        Some(TokenTree::Ident(name)) if name.to_string() == "ignore" => {}
        _ => return None,
    }
    let reason = tokens.nth(1).map(|literal| literal.to_string());
    Some(reason.unwrap_or_else(|| "\"marked with #[ignore]\"".to_owned()))
}
