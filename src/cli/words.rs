//! The words of options whose values are enums of the library, with their help.

use crate::engine::markov::Classes;
use crate::engine::pagerank::{Repeated, SelfLoops};
use crate::scalar::Precision;
use crate::solve::markov::ChainMethod;
use crate::solve::pagerank::{Dangling, RankMethod};
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// Gives each variant of an enum its word and its help.
macro_rules! words {
    ($of:ident { $($variant:ident = $word:literal, $help:literal;)+ }) => {
        impl ValueEnum for $of {
            fn value_variants<'a>() -> &'a [$of] {
                &[$($of::$variant),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(match self {
                    $($of::$variant => PossibleValue::new($word).help($help),)+
                })
            }
        }
    };
}

words!(Precision {
    F64 = "f64", "Matrix and vectors in double precision";
    F32 = "f32", "Matrix and vectors in single precision; sums of dot products in double precision";
    Mixed = "mixed", "Matrix in single, vectors in double precision";
});

words!(RankMethod {
    Power = "power", "Power iteration";
    Extrapolated = "extrapolated", "Power iteration with periodic extrapolation from its last steps";
    GaussSeidel = "gauss-seidel", "Gauss-Seidel in a fixed order, on the CPU";
});

words!(Dangling {
    Uniform = "uniform", "Any vertex, with equal probability";
    Personalised = "personalised", "The vertices of --personalise";
    SelfLoop = "self-loop", "The same vertex";
    Drop = "drop", "Nowhere: the ranks sum to less than 1, as in the GAP benchmark";
});

words!(SelfLoops {
    Keep = "keep", "Self-loops count like all other links";
    Remove = "remove", "Self-loops are removed";
});

words!(Repeated {
    Keep = "keep", "Each repetition counts; weights add up";
    Once = "once", "Each link counts once, with the weight of the first";
});

words!(ChainMethod {
    Power = "power", "Power iteration";
    GaussSeidel = "gauss-seidel", "Updates one state after the other";
    Aggregation =
        "aggregation",
        "For chains of groups that are seldom left: solves the chain of the groups, with Gauss-Seidel passes in \
         between";
});

words!(Classes {
    Refuse = "refuse", "Refuse the chain, with the number of classes";
    Each = "each", "Compute the distribution of each class";
});
