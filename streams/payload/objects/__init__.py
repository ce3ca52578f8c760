"""Object stores: S3, GCS, Azure Blob, a local folder, memory."""
