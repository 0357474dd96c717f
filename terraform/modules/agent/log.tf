# The log of the audit's hashes: a bucket and a key that only the sweep uses. The sweep can add objects and read them. It
# can neither change nor delete one, except the object "checkpoint", whose earlier versions are kept.

locals {
  log_bucket = one(google_storage_bucket.log[*].name)
}

resource "google_storage_bucket" "log" {
  count = var.transparency_log == null ? 0 : 1

  project                     = var.project_id
  name                        = "${var.project_id}-${var.prefix}-log"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = !var.deletion_protection
  labels                      = local.labels

  versioning {
    enabled = true
  }
  soft_delete_policy {
    retention_duration_seconds = 90 * 86400
  }
}

resource "google_kms_crypto_key" "log" {
  count = var.transparency_log == null ? 0 : 1

  name                       = "log"
  key_ring                   = google_kms_key_ring.agent.id
  purpose                    = "ASYMMETRIC_SIGN"
  destroy_scheduled_duration = "2592000s"
  labels                     = local.labels
  version_template {
    algorithm        = "EC_SIGN_ED25519"
    protection_level = "SOFTWARE"
  }
}
