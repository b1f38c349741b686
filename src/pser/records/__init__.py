"""What a run leaves behind: manifest, metrics, checkpoints, snapshots."""
