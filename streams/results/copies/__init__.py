"""Result tiers: copies of results that the payload store has anyway."""
