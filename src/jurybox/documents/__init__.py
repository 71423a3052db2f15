"""Reading what people write: plain YAML, numbers and texts, with the place of every fault."""
