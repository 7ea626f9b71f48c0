//! The macros that make names, sweeps, programs and products from formulas.

/// Declares names: `vectors v { x, r }` makes `v::x` and `v::r`, numbered from 0;
/// `scalars s { rr, alpha }` makes slots.
macro_rules! names {
    ($(#[$doc:meta])* vectors $v:ident { $($(#[$vdoc:meta])* $vector:ident),+ $(,)? } scalars $s:ident { $($(#[$sdoc:meta])* $scalar:ident),* $(,)? }) => {
        /// Names of the vectors.
        $(#[$doc])*
        #[allow(non_upper_case_globals, non_camel_case_types, dead_code, missing_docs)]
        pub(super) mod $v {
            use $crate::device::formula::Name;
            #[derive(Clone, Copy)]
            enum Order { $($vector),+ }
            $($(#[$vdoc])* pub(crate) const $vector: Name = Name(Order::$vector as u8);)+
        }
        /// Names of the scalars.
        #[allow(non_upper_case_globals, non_camel_case_types, dead_code, missing_docs)]
        pub(super) mod $s {
            use $crate::device::Slot;
            #[derive(Clone, Copy)]
            enum Order { $($scalar,)* End }
            $($(#[$sdoc])* pub(crate) const $scalar: Slot = Slot(Order::$scalar as u8);)*
            /// The number of scalars.
            pub(crate) const COUNT: usize = Order::End as usize;
        }
    };
}

/// Makes a program on the scalars in the module `s`, as a slice of operations:
///
/// | formula | meaning |
/// |---|---|
/// | `c = a;` `c = a + b;` `c = a - b;` `c = a * b;` `c = a / b;` `c = sqrt(a);` | computes a scalar |
/// | `count a;` | counts an iteration, and keeps its value for the host |
/// | `note FIRST = a;` | keeps another value of the iteration that is counted next |
/// | `stop Converged if a <= b;` | ends the column with a [`StopCode`](crate::stop::StopCode) |
/// | `stop NotFinite if not_finite(a);` | the same; also `not_positive(a)` and `negative(a)`, both true for NaN |
macro_rules! program {
    (@ [$($done:expr,)*]) => { &[$($done),*] };
    (@ [$($done:expr,)*] count $a:ident; $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::Count(s::$a),] $($rest)*)
    };
    (@ [$($done:expr,)*] note $track:ident = $a:ident; $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::Note($track, s::$a),] $($rest)*)
    };
    (@ [$($done:expr,)*] stop $code:ident if $a:ident <= $b:ident; $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::StopIf(
            $crate::device::Test::AtMost(s::$a, s::$b), $crate::stop::StopCode::$code),] $($rest)*)
    };
    (@ [$($done:expr,)*] stop $code:ident if not_finite($a:ident); $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::StopIf(
            $crate::device::Test::NotFinite(s::$a), $crate::stop::StopCode::$code),] $($rest)*)
    };
    (@ [$($done:expr,)*] stop $code:ident if not_positive($a:ident); $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::StopIf(
            $crate::device::Test::NotPositive(s::$a), $crate::stop::StopCode::$code),] $($rest)*)
    };
    (@ [$($done:expr,)*] stop $code:ident if negative($a:ident); $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::StopIf(
            $crate::device::Test::Negative(s::$a), $crate::stop::StopCode::$code),] $($rest)*)
    };
    (@ [$($done:expr,)*] $c:ident = sqrt($a:ident); $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::Root(s::$c, s::$a),] $($rest)*)
    };
    (@ [$($done:expr,)*] $c:ident = $a:ident + $b:ident; $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::Add(s::$c, s::$a, s::$b),] $($rest)*)
    };
    (@ [$($done:expr,)*] $c:ident = $a:ident - $b:ident; $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::Subtract(s::$c, s::$a, s::$b),] $($rest)*)
    };
    (@ [$($done:expr,)*] $c:ident = $a:ident * $b:ident; $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::Multiply(s::$c, s::$a, s::$b),] $($rest)*)
    };
    (@ [$($done:expr,)*] $c:ident = $a:ident / $b:ident; $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::Divide(s::$c, s::$a, s::$b),] $($rest)*)
    };
    (@ [$($done:expr,)*] $c:ident = $a:ident; $($rest:tt)*) => {
        $crate::device::formula::program!(@ [$($done,)* $crate::device::Op::Copy(s::$c, s::$a),] $($rest)*)
    };
    (@ $($other:tt)*) => { compile_error!("this is not an operation on scalars") };
    ($($program:tt)*) => { $crate::device::formula::program!(@ [] $($program)*) };
}

/// Makes a sweep over the vectors in the module `v` and the scalars in the module `s`; see the module.
macro_rules! sweep {
    // The sums.
    (@s $b:ident [$($sum:expr,)*]) => { &[$($sum),*] };
    (@s $b:ident [$($sum:expr,)*] $out:ident = <$x:ident, $y:ident>; $($rest:tt)*) => {
        $crate::device::formula::sweep!(@s $b [$($sum,)*
            $crate::device::Dot::product($b.operand(v::$x), $b.operand(v::$y), s::$out),] $($rest)*)
    };
    (@s $b:ident [$($sum:expr,)*] $out:ident = norm1($x:ident); $($rest:tt)*) => {
        $crate::device::formula::sweep!(@s $b [$($sum,)*
            $crate::device::Dot::magnitudes($b.operand(v::$x), s::$out),] $($rest)*)
    };
    (@s $b:ident [$($sum:expr,)*] $out:ident = norm1($x:ident . * $y:ident); $($rest:tt)*) => {
        $crate::device::formula::sweep!(@s $b [$($sum,)*
            $crate::device::Dot::weighted_magnitudes($b.operand(v::$x), $b.operand(v::$y), s::$out),] $($rest)*)
    };
    (@s $b:ident [$($sum:expr,)*] $out:ident = sum($x:ident if $y:ident < 0); $($rest:tt)*) => {
        $crate::device::formula::sweep!(@s $b [$($sum,)*
            $crate::device::Dot::marked($b.operand(v::$x), $b.operand(v::$y), s::$out),] $($rest)*)
    };
    // Updates are skipped: all sums come after them.
    (@s $b:ident $sums:tt $y:ident = $($rest:tt)*) => { $crate::device::formula::sweep!(@skip $b $sums $($rest)*) };
    (@skip $b:ident $sums:tt ; $($rest:tt)*) => { $crate::device::formula::sweep!(@s $b $sums $($rest)*) };
    (@skip $b:ident $sums:tt $skipped:tt $($rest:tt)*) => { $crate::device::formula::sweep!(@skip $b $sums $($rest)*) };

    // The updates: those that are complete, the current target with its terms, and the sign of the next term.
    (@u $b:ident [$($update:expr,)*]) => { &[$($update),*] };
    (@u $b:ident $updates:tt $out:ident = <$x:ident, $y:ident>; $($rest:tt)*) => {
        $crate::device::formula::sweep!(@u $b $updates $($rest)*)
    };
    (@u $b:ident $updates:tt $out:ident = norm1($($x:tt)*); $($rest:tt)*) => {
        $crate::device::formula::sweep!(@u $b $updates $($rest)*)
    };
    (@u $b:ident $updates:tt $out:ident = sum($($x:tt)*); $($rest:tt)*) => {
        $crate::device::formula::sweep!(@u $b $updates $($rest)*)
    };
    (@u $b:ident $updates:tt $y:ident = - $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $updates $y [] - $($rest)*)
    };
    (@u $b:ident $updates:tt $y:ident = $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $updates $y [] + $($rest)*)
    };
    (@t $b:ident [$($update:expr,)*] $y:ident [$($term:expr,)*] ; $($rest:tt)*) => {
        $crate::device::formula::sweep!(@u $b [$($update,)*
            $crate::device::Update { target: $b.target(v::$y), terms: &[$($term),*] },] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] + [$i:literal] * $d:ident . * $x:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)* $crate::device::Term::number($i, $b.operand(v::$d))
            .times($b.operand(v::$x)),] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] + [$i:literal] * 1 $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)*
            $crate::device::Term::number($i, $crate::device::Operand::Ones),] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] + [$i:literal] * $x:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)* $crate::device::Term::number($i, $b.operand(v::$x)),] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] $sign:tt $c:ident * $d:ident . * $x:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)*
            $crate::device::formula::sweep!(@signed $sign $c, $b.operand(v::$d)).times($b.operand(v::$x)),] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] $sign:tt $c:ident * 1 $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)*
            $crate::device::formula::sweep!(@signed $sign $c, $crate::device::Operand::Ones),] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] $sign:tt $c:ident * $x:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)*
            $crate::device::formula::sweep!(@signed $sign $c, $b.operand(v::$x)),] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] + $d:ident . * $x:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)*
            $crate::device::Term::one($b.operand(v::$d)).times($b.operand(v::$x)),] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] + $d:ident . / $x:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)*
            $crate::device::Term::one($b.operand(v::$d)).over($b.operand(v::$x)),] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] + $x:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)* $crate::device::Term::one($b.operand(v::$x)),] $($rest)*)
    };
    (@t $b:ident $us:tt $y:ident [$($term:expr,)*] - $x:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@t $b $us $y [$($term,)* $crate::device::Term::minus_one($b.operand(v::$x)),] $($rest)*)
    };
    (@signed + $c:ident, $v:expr) => { $crate::device::Term::slot(s::$c, $v) };
    (@signed - $c:ident, $v:expr) => { $crate::device::Term::minus(s::$c, $v) };

    // The names of the vectors that are written, and of all that are used, in their order.
    (@n [$($t:ident)*] [$($u:ident)*]) => { $crate::device::formula::Binding::of(&[$(v::$t),*], &[$(v::$u),*]) };
    (@n $ts:tt [$($u:ident)*] $out:ident = <$x:ident, $y:ident>; $($rest:tt)*) => {
        $crate::device::formula::sweep!(@n $ts [$($u)* $x $y] $($rest)*)
    };
    (@n $ts:tt [$($u:ident)*] $out:ident = norm1($x:ident); $($rest:tt)*) => {
        $crate::device::formula::sweep!(@n $ts [$($u)* $x] $($rest)*)
    };
    (@n $ts:tt [$($u:ident)*] $out:ident = norm1($x:ident . * $y:ident); $($rest:tt)*) => {
        $crate::device::formula::sweep!(@n $ts [$($u)* $x $y] $($rest)*)
    };
    (@n $ts:tt [$($u:ident)*] $out:ident = sum($x:ident if $y:ident < 0); $($rest:tt)*) => {
        $crate::device::formula::sweep!(@n $ts [$($u)* $x $y] $($rest)*)
    };
    (@n [$($t:ident)*] $us:tt $y:ident = - $($rest:tt)*) => { $crate::device::formula::sweep!(@m [$($t)* $y] $us + $($rest)*) };
    (@n [$($t:ident)*] $us:tt $y:ident = $($rest:tt)*) => { $crate::device::formula::sweep!(@m [$($t)* $y] $us + $($rest)*) };
    (@m $ts:tt $us:tt ; $($rest:tt)*) => { $crate::device::formula::sweep!(@n $ts $us $($rest)*) };
    (@m $ts:tt $us:tt $sign:tt [$i:literal] * 1 $($rest:tt)*) => { $crate::device::formula::sweep!(@m $ts $us $($rest)*) };
    (@m $ts:tt $us:tt $sign:tt [$i:literal] * $($rest:tt)*) => { $crate::device::formula::sweep!(@m $ts $us + $($rest)*) };
    (@m $ts:tt $us:tt $sign:tt $c:ident * 1 $($rest:tt)*) => { $crate::device::formula::sweep!(@m $ts $us $($rest)*) };
    (@m $ts:tt $us:tt $sign:tt $c:ident * $($rest:tt)*) => { $crate::device::formula::sweep!(@m $ts $us + $($rest)*) };
    (@m $ts:tt [$($u:ident)*] $sign:tt $x:ident . * $y:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@m $ts [$($u)* $x $y] $($rest)*)
    };
    (@m $ts:tt [$($u:ident)*] $sign:tt $x:ident . / $y:ident $($rest:tt)*) => {
        $crate::device::formula::sweep!(@m $ts [$($u)* $x $y] $($rest)*)
    };
    (@m $ts:tt [$($u:ident)*] $sign:tt $x:ident $($rest:tt)*) => { $crate::device::formula::sweep!(@m $ts [$($u)* $x] $($rest)*) };

    ({ $name:literal: $($body:tt)* }) => { $crate::device::formula::sweep!({ $name: $($body)* } then (&[])) };
    ({ $name:literal: $($body:tt)* } then { $($program:tt)* }) => {
        $crate::device::formula::sweep!({ $name: $($body)* } then ($crate::device::formula::program!($($program)*)))
    };
    ({ $name:literal: $($body:tt)* } then ($program:expr)) => {{
        const BINDING: $crate::device::formula::Binding = $crate::device::formula::sweep!(@n [] [] $($body)*);
        $crate::device::formula::Formula {
            binding: BINDING,
            sweep: $crate::device::Sweep {
                name: $name,
                writes: BINDING.writes(),
                reads: BINDING.reads(),
                updates: $crate::device::formula::sweep!(@u BINDING [] $($body)*),
                dots: $crate::device::formula::sweep!(@s BINDING [] $($body)*),
                then: $program,
                numbers: &[],
            },
        }
    }};
}

/// Makes a product with the vectors in the module `v` and the scalars in the module `s`:
/// `{ q = A p; pq = <p, q> } then { .. }`.
macro_rules! product {
    ({ $y:ident = $a:ident $x:ident }) => {
        $crate::device::formula::Product { x: v::$x, y: v::$y, then: None }
    };
    ({ $y:ident = $a:ident $x:ident; $out:ident = <$x2:ident, $y2:ident> } then { $($program:tt)* }) => {
        $crate::device::formula::product!({ $y = $a $x; $out = <$x2, $y2> } then ($crate::device::formula::program!($($program)*)))
    };
    ({ $y:ident = $a:ident $x:ident; $out:ident = <$x2:ident, $y2:ident> } then ($program:expr)) => {{
        const {
            let [x, y, x2, y2] = [v::$x, v::$y, v::$x2, v::$y2];
            let both = (x.0 == x2.0 && y.0 == y2.0) || (x.0 == y2.0 && y.0 == x2.0);
            assert!(both, "the dot product is that of the two vectors of the product");
        }
        $crate::device::formula::Product { x: v::$x, y: v::$y, then: Some((s::$out, $program)) }
    }};
}

pub(crate) use {names, product, program, sweep};
