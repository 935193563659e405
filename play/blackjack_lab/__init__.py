"""Tabular learning at the Blackjack table, step by step."""
