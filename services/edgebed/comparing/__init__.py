"""What several trials say together: measures, statistics over seeds, comparisons, reproductions of published tables."""
