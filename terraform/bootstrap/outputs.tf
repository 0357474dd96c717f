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

output "left_to_do" {
  description = "The steps that only a person can take, in order. Print them with: terraform output -raw left_to_do"
  value       = <<-EOT
    1. Keep this state: gcloud storage cp terraform.tfstate gs://${google_storage_bucket.state.name}/bootstrap/
    2. Create the identity with which Pub/Sub calls functions: gcloud beta services identity create --service=pubsub.googleapis.com --project=${var.project_id}
    3. Choose how users sign in: https://console.cloud.google.com/customer-identity/providers?project=${var.project_id}
       With another issuer, skip this and set auth in the variable file.
    4. Create a web client of OAuth: https://console.cloud.google.com/auth/clients?project=${var.project_id}
       Its redirect address is https://DOMAIN/api/agent/connections/google/callback; without a domain it is the output oauth_redirect of the apply in step 7.
    5. Add the two values that every deployment needs: the client's secret, and a new key.
       printf %s "$CLIENT_SECRET" | gcloud secrets versions add ${var.prefix}-oauth-client-secret --project=${var.project_id} --data-file=-
       openssl rand -base64 32 | tr -d '\n' | gcloud secrets versions add ${var.prefix}-chat-key --project=${var.project_id} --data-file=-
    6. Write into the environment's variable file, and select its state:
       project_id = "${var.project_id}"${var.prefix == "agent" ? "" : "\n       prefix = \"${var.prefix}\""}
       oauth_client_id = "CLIENT_ID"
       secret_versions = { chat-key = "1", oauth-client-secret = "1" }
       terraform -chdir=terraform init -backend-config=bucket=${google_storage_bucket.state.name} -backend-config=prefix=${var.prefix}/ENVIRONMENT
    7. Deploy: go run ./scripts/package -out dist && terraform -chdir=terraform apply -var-file=ENVIRONMENT.tfvars -var release="$(git describe --tags --always)"
    8. With a domain, point its A record at the output address.
  EOT
}
