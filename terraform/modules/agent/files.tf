# The bucket of uploaded files. The functions encrypt each file with the key in tokens.tf before it is stored. A deletion
# is final: there are no older versions, and by default Google keeps no deleted objects. No lifecycle rule deletes by age,
# because a conversation may need a file for as long as it is used: the sweep deletes files that no longer have a document.

locals {
  files_bucket = one(google_storage_bucket.files[*].name)
}

resource "google_storage_bucket" "files" {
  count = var.files == null ? 0 : 1

  project                     = var.project_id
  name                        = "${var.project_id}-${var.prefix}-files"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = !var.deletion_protection
  labels                      = local.labels

  soft_delete_policy {
    retention_duration_seconds = var.files.soft_delete_days * 86400
  }
}
