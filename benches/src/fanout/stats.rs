//! Medians and quantiles.

/// The value at a part of a sorted list; zero when it is empty.
#[must_use]
pub fn quantile(sorted: &[u32], per_mille: usize) -> u32 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * per_mille / 1_000).copied().unwrap_or_default()
}

/// The middle of a few figures; zero when there is none.
#[must_use]
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Figures as they came, for the reader who wants the spread.
#[must_use]
pub fn spread(figures: &[f64]) -> String {
    figures.iter().map(|figure| format!("{figure:.1}")).collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_medians_of_few_and_none() {
        let sorted: Vec<u32> = (0..=100).collect();
        assert_eq!([0, 500, 990, 1_000].map(|part| quantile(&sorted, part)), [0, 50, 99, 100]);
        assert_eq!((quantile(&[], 500), quantile(&[7], 990)), (0, 7));
        assert_eq!((median(&[3.0, 1.0, 2.0]).to_bits(), median(&[]).to_bits()), (2f64.to_bits(), 0));
    }
}
