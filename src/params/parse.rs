//! Parses parameters. Errors are texts that name what is wrong, what was typed and what is allowed.

use super::{Kind, Named, Param, Params, UNNAMED, Value};
use crate::spelling::{did_you_mean, nearest};

/// Splits `name:parameters`; there are no parameters without a colon.
pub(crate) fn split_name(typed: &str) -> (&str, Option<&str>) {
    typed.split_once(':').map_or((typed, None), |(name, rest)| (name, Some(rest)))
}

/// Splits a list at the commas outside of parentheses.
pub(crate) fn items(typed: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    typed.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// Checks that every parenthesis has its counterpart.
fn is_balanced(text: &str) -> bool {
    let mut depth = 0usize;
    for c in text.chars() {
        match (c, depth) {
            ('(', _) => depth += 1,
            (')', 0) => return false,
            (')', _) => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

/// Returns the text between a first parenthesis and its counterpart at the end; `None` if the text has no
/// such parentheses.
fn enclosed(text: &str) -> Option<&str> {
    text.strip_prefix('(')?.strip_suffix(')').filter(|inside| is_balanced(inside))
}

/// Formats `there are: a, b`, with the names similar to the typed one before it.
fn there_are<'a>(typed: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = did_you_mean(&nearest(typed, names.clone()));
    match names.collect::<Vec<_>>() {
        names if names.is_empty() => "there are none".to_owned(),
        names => format!("{near}there are: {}", names.join(", ")),
    }
}

impl Params {
    /// Parses what follows the colon after a name; `None` if there is no colon.
    pub(crate) fn parse(known: &'static [Param], typed: Option<&str>) -> Result<Params, String> {
        let mut params = Params::of(known);
        let Some(typed) = typed else { return Ok(params) };
        if !is_balanced(typed) {
            return Err(format!("the parentheses of '{typed}' do not match"));
        }
        for (i, item) in items(typed).enumerate() {
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None if i == 0 && is_unnamed(item) && params.param(UNNAMED).is_some() => {
                    (UNNAMED, Some(item))
                }
                None => (item, None),
            };
            if item.is_empty() {
                let missing =
                    "a parameter is missing after ':' or ','; add a parameter, or remove the ':' or ','";
                return Err(missing.to_owned());
            }
            let Some(param) = params.param(name) else {
                let known = there_are(name, known.iter().map(|param| param.name));
                return Err(format!("there is no parameter '{name}'; {known}"));
            };
            if params.has(name) {
                return Err(format!("parameter '{name}' is given twice"));
            }
            params.set(param.name, param.parse(value)?);
        }
        Ok(params)
    }
}

/// Returns whether an item without a value does not begin like the name of a flag.
fn is_unnamed(item: &str) -> bool {
    !item.starts_with(|c: char| c.is_ascii_alphabetic() || c == '(') && !item.is_empty()
}

impl Param {
    /// Parses a value, which flags do not have.
    fn parse(&self, typed: Option<&str>) -> Result<Value, String> {
        let name = self.name;
        match (self.kind, typed) {
            (Kind::Flag, None) => Ok(Value::Flag),
            (Kind::Flag, Some(typed)) => Err(format!("{name} takes no value; '{typed}' was given")),
            (Kind::Nested(names), typed) => nested(names, typed.unwrap_or_default(), name),
            (kind, typed) => {
                let typed = typed.unwrap_or_default();
                kind.read(typed).ok_or_else(|| format!("{name} '{typed}' is not {kind}"))
            }
        }
    }
}

/// Parses a name, or a name with parameters in parentheses, as the value of the parameter `of`.
fn nested(names: &'static [Named], typed: &str, of: &str) -> Result<Value, String> {
    let (name, rest) = enclosed(typed).map_or((typed, None), split_name);
    let Some(named) = names.iter().find(|named| named.name == name) else {
        let near = there_are(name, names.iter().map(|named| named.name));
        let hint = match split_name(name).1 {
            Some(_) => format!("; enclose a name and its parameters in parentheses: {of}=({name})"),
            None => String::new(),
        };
        return Err(format!("{of} has no choice '{name}'; {near}{hint}"));
    };
    let params = Params::parse(named.params, rest).map_err(|fault| format!("{of} {name}: {fault}"))?;
    Ok(Value::Nested(named.name, params))
}

impl Kind {
    /// Reads a value; `None` if it is not permitted.
    pub(super) fn read(&self, typed: &str) -> Option<Value> {
        let word = |words: &'static [&'static str], typed: &str| {
            words.iter().find(|&&word| word == typed).map(|word| Value::Word(word))
        };
        match *self {
            Kind::Word(words) => word(words, typed),
            Kind::WordOr(words, others) => word(words, typed).or_else(|| others.read(typed)),
            Kind::Whole(low, high) => whole(typed, low, high).map(Value::Whole),
            Kind::Real(low, high) => {
                let number = typed.parse().ok().filter(|number: &f64| number.is_finite());
                number.filter(|number| std::ops::RangeBounds::contains(&(low, high), number)).map(Value::Real)
            }
            Kind::Extents(form, low, high) => {
                let extents: Option<Vec<u64>> = typed.split('x').map(|part| whole(part, low, high)).collect();
                let value =
                    extents.filter(|extents| extents.len() == form.split('x').count()).map(Value::Extents);
                // Only the printed form is accepted, so that 05x5 is no second name of 5x5.
                value.filter(|value| value.to_string() == typed)
            }
            Kind::Flag => None,
            Kind::Text => {
                let text = enclosed(typed).unwrap_or(typed);
                (!text.is_empty()).then(|| Value::Text(text.to_owned()))
            }
            Kind::Nested(names) => nested(names, typed, "").ok(),
        }
    }
}

fn whole(typed: &str, low: u64, high: u64) -> Option<u64> {
    typed.parse().ok().filter(|number| (low..=high).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::Bound;

    const SMOOTHERS: &[Named] = &[
        Named { name: "jacobi", params: &[Param::new("weight", WEIGHT, "the weight").or("0.7")] },
        Named { name: "chebyshev", params: &[Param::new("degree", Kind::Whole(1, 100), "products").or("4")] },
        Named { name: "block", params: &[Param::new("inner", Kind::Nested(INNER), "of each block")] },
    ];
    const INNER: &[Named] = &[Named { name: "text", params: &[Param::new("of", Kind::Text, "any")] }];
    const WEIGHT: Kind = Kind::Real(Bound::Excluded(0.0), Bound::Excluded(2.0));
    const SIZE: Kind = Kind::Extents("RxC", 1, 64);
    /// Parameters of each kind.
    const AMG: &[Param] = &[
        Param::word("cycle", &["v", "w"], "the cycle"),
        Param::new("smoother", Kind::Nested(SMOOTHERS), "on each level").or("(chebyshev:degree=3)"),
        Param::new("strength", Kind::Real(Bound::Included(0.0), Bound::Excluded(1.0)), "couplings")
            .or("0.08"),
        Param::new("levels", Kind::Whole(1, u64::MAX), "levels").or("10").always_printed(),
        Param::new("block", Kind::WordOr(&["auto", "2x2"], &SIZE), "the block").or("auto"),
        Param::new("n", Kind::Extents("NXxNY", 1, u64::MAX), "the size"),
        Param::new("lean", Kind::Flag, "whether it saves memory"),
        Param::new("note", Kind::Text, "any"),
    ];

    fn parse(typed: &str) -> Result<Params, String> {
        Params::parse(AMG, Some(typed))
    }

    fn fault(typed: &str) -> String {
        parse(typed).unwrap_err()
    }

    #[test]
    fn values_of_each_kind_are_parsed_and_printed_as_typed() {
        for typed in [
            "cycle=w,smoother=(chebyshev:degree=7)",
            "smoother=(block:inner=(text:of=(a,b=(c))))",
            "smoother=jacobi,lean,strength=0.25,levels=3",
            "n=3x4,block=5x7,note=plain: text=1",
            "block=2x2",
        ] {
            assert_eq!(parse(typed).unwrap().to_string(), format!(":{typed}"));
        }
        assert_eq!(parse("3x4,lean").unwrap(), parse("n=3x4,lean").unwrap());
        assert_eq!(parse("smoother=(jacobi)").unwrap(), parse("smoother=jacobi").unwrap());
        assert_eq!(Params::parse(AMG, None).unwrap().to_string(), "");
    }

    #[test]
    fn omitted_parameters_have_their_defaults_and_the_normal_form_prints_what_it_must() {
        let params = Params::of(AMG);
        assert_eq!(
            (params.word("cycle"), params.whole("levels"), params.real("strength")),
            (Some("v"), 10, 0.08)
        );
        assert!(!params.has("lean") && params.find("n").is_none());
        let Some(Value::Nested("chebyshev", smoother)) = params.find("smoother") else { panic!("{params}") };
        assert_eq!(smoother.whole("degree"), 3);
        assert_eq!(params.normal().to_string(), ":levels=10");
        let typed = parse("strength=0.08,smoother=jacobi,cycle=w").unwrap();
        assert_eq!(typed.normal().to_string(), ":cycle=w,smoother=jacobi,levels=10");
        for param in AMG {
            assert_eq!(param.default.is_some(), param.default_value().is_some(), "{}", param.name);
        }
    }

    #[test]
    fn a_fault_names_what_was_typed_and_what_is_allowed() {
        for (typed, said) in [
            ("", "a parameter is missing after ':' or ','"),
            ("lean,", "a parameter is missing"),
            ("leen", "there is no parameter 'leen'; did you mean lean? there are: cycle, smoother,"),
            ("lean,lean", "parameter 'lean' is given twice"),
            ("lean=1", "lean takes no value; '1' was given"),
            ("cycle=x", "cycle 'x' is not one of v, w"),
            ("cycle", "cycle '' is not one of v, w"),
            ("block=0x2", "block '0x2' is not one of auto, 2x2, RxC with R and C from 1 to 64"),
            ("block=02x2", "block '02x2' is not"),
            ("levels=0", "levels '0' is not a whole number from 1 to 18446744073709551615"),
            ("strength=1", "strength '1' is not a number from 0 to below 1"),
            ("strength=NaN", "strength 'NaN' is not"),
            ("3x4x5", "n '3x4x5' is not NXxNY with NX and NY from 1"),
            ("note=", "note '' is not a text that is not empty"),
            (
                "smoother=(chebyshev:degree=0)",
                "smoother chebyshev: degree '0' is not a whole number from 1 to 100",
            ),
            ("smoother=jacoby", "smoother has no choice 'jacoby'; did you mean jacobi? there are: jacobi,"),
            ("smoother=jacobi:weight=1", "in parentheses: smoother=(jacobi:weight=1)"),
            ("smoother=(jacobi", "the parentheses of 'smoother=(jacobi' do not match"),
            ("note=)(", "do not match"),
        ] {
            assert!(fault(typed).contains(said), "{typed}: {}", fault(typed));
        }
    }

    #[test]
    fn an_interval_is_described_by_the_bounds_that_it_has() {
        let (low, high) = (Bound::Included(-1.0), Bound::Excluded(2.0));
        for (from, to, said) in [
            (low, high, "a number from -1 to below 2"),
            (low, Bound::Unbounded, "a number from -1"),
            (Bound::Unbounded, high, "a number below 2"),
            (Bound::Unbounded, Bound::Unbounded, "a number without bounds"),
        ] {
            assert_eq!(Kind::Real(from, to).to_string(), said);
        }
    }

    #[test]
    fn lists_are_split_outside_of_parentheses_only() {
        let split = |typed| items(typed).collect::<Vec<_>>();
        assert_eq!(split("a,b=(c,d=(e,f)),g"), ["a", "b=(c,d=(e,f))", "g"]);
        assert_eq!(split("a),(b,c"), ["a)", "(b,c"]);
        assert_eq!(split(""), [""]);
    }

    /// Any text whose parentheses match.
    fn balanced() -> impl Strategy<Value = String> {
        let leaf = "[a-z0-9,:=. ]{1,5}";
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop::collection::vec(inner, 1..3).prop_map(|parts| format!("({})x", parts.join(")(")))
        })
    }

    fn smoother() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("jacobi".to_owned()),
            (1e-3..1.999f64).prop_map(|weight| format!("(jacobi:weight={weight})")),
            (1..=100u64).prop_map(|degree| format!("(chebyshev:degree={degree})")),
            balanced().prop_map(|text| format!("(block:inner=(text:of=({text})))")),
        ]
    }

    fn typed() -> impl Strategy<Value = String> {
        let maybe = |text: BoxedStrategy<String>| prop::option::of(text);
        (
            maybe(prop_oneof![Just("cycle=v".to_owned()), Just("cycle=w".to_owned())].boxed()),
            maybe(smoother().prop_map(|typed| format!("smoother={typed}")).boxed()),
            maybe((0.0..1.0f64).prop_map(|typed| format!("strength={typed}")).boxed()),
            maybe((1..u64::MAX).prop_map(|typed| format!("levels={typed}")).boxed()),
            maybe((1..65u64, 1..65u64).prop_map(|(r, c)| format!("block={r}x{c}")).boxed()),
            maybe((1..u64::MAX, 1..u64::MAX).prop_map(|(x, y)| format!("n={x}x{y}")).boxed()),
            maybe(Just("lean".to_owned()).boxed()),
            maybe(balanced().prop_map(|typed| format!("note=({typed})")).boxed()),
        )
            .prop_map(|(a, b, c, d, e, f, g, h)| [a, b, c, d, e, f, g, h])
            .prop_map(|all| all.into_iter().flatten().collect::<Vec<_>>())
            .prop_filter("no parameter", |all| !all.is_empty())
            .prop_shuffle()
            .prop_map(|all| all.join(","))
    }

    proptest! {
        #[test]
        fn parameters_are_parsed_from_their_printed_form(typed in typed()) {
            for params in [parse(&typed).unwrap(), parse(&typed).unwrap().normal()] {
                let printed = params.to_string();
                prop_assert_eq!(Params::parse(AMG, split_name(&printed).1).unwrap(), params);
            }
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "[a-z(),:=x0-9. ]{0,40}|.{0,40}") {
            for typed in [text.clone(), format!("smoother=({text})"), format!("note={text}")] {
                if let Ok(params) = parse(&typed) {
                    prop_assert_eq!(Params::parse(AMG, split_name(&params.to_string()).1), Ok(params));
                }
            }
        }
    }
}
