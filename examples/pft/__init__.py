"""The PFT workload: patients' records fetched page by page and saved."""
