# The key that signs users' decisions. It does not rotate by itself: every function needs the public key of a version before
# that version signs. If the key is lost, users are asked again.

resource "google_kms_crypto_key" "decisions" {
  count = var.decisions == null ? 0 : 1

  name                       = "decisions"
  key_ring                   = google_kms_key_ring.agent.id
  purpose                    = "ASYMMETRIC_SIGN"
  destroy_scheduled_duration = "2592000s"
  labels                     = local.labels
  version_template {
    algorithm        = "EC_SIGN_ED25519"
    protection_level = "SOFTWARE"
  }
}

# The key that signs users' passkeys, which only the function passkeys may use. If the key is lost, users add their
# passkeys again.
resource "google_kms_crypto_key" "enrolment" {
  count = var.passkeys == null ? 0 : 1

  name                       = "enrolment"
  key_ring                   = google_kms_key_ring.agent.id
  purpose                    = "ASYMMETRIC_SIGN"
  destroy_scheduled_duration = "2592000s"
  labels                     = local.labels
  version_template {
    algorithm        = "EC_SIGN_ED25519"
    protection_level = "SOFTWARE"
  }
}
