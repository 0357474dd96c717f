# The key that encrypts users' refresh tokens. Without it every linked account is lost, so a destroyed key version can be
# restored for 30 days.

resource "google_kms_key_ring" "agent" {
  project  = var.project_id
  name     = var.prefix
  location = var.region
}

resource "google_kms_crypto_key" "tokens" {
  name                       = "oauth-tokens"
  key_ring                   = google_kms_key_ring.agent.id
  rotation_period            = "7776000s"
  destroy_scheduled_duration = "2592000s"
  labels                     = local.labels
}
