output "name" {
  description = "The Cloud Run service's name."
  value       = google_cloudfunctions2_function.this.name
}

output "uri" {
  description = "The function's own address."
  value       = google_cloudfunctions2_function.this.service_config[0].uri
}

output "identity" {
  description = "The function's service account."
  value       = google_service_account.runtime.email
}

output "archive_sha256" {
  description = "The source that runs."
  value       = local.sha
}

output "ingress" {
  description = "The networks that requests can come from."
  value       = google_cloudfunctions2_function.this.service_config[0].ingress_settings
}

output "invoker" {
  description = "The callers that can invoke the function."
  value       = google_cloud_run_v2_service_iam_member.invoker.member
}
