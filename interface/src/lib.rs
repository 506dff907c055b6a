//! The one definition of NearPM's commands, registers, status codes, saved state and media formats
