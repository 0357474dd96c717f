output "state_bucket" {
  description = "For terraform init -backend-config=bucket=…"
  value       = google_storage_bucket.state.name
}

output "secrets" {
  description = "The commands that add the secrets' values. Pin the versions that they print in secret_versions."
  value       = { for name, s in google_secret_manager_secret.this : name => "gcloud secrets versions add ${s.secret_id} --project=${var.project_id} --data-file=-" }
}

output "github" {
  description = "The settings with which GitHub workflows sign in; null without workflows."
  value = var.github == null ? null : {
    provider = one(values(google_iam_workload_identity_pool_provider.github)[*].name)
    plan     = google_service_account.github["plan"].email
    apply    = google_service_account.github["apply"].email
  }
}
