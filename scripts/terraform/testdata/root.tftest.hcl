# Planned with each environment: what it gives the module is what the module takes.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

variables {
  project_id      = "acme-agent"
  release         = "v1.2.3"
  oauth_client_id = "123-abc.apps.googleusercontent.com"
  domain          = "agent.acme.com"
  alert_emails    = ["oncall@acme.com"]
}

run "plan" {
  command = plan
  assert {
    condition     = length(module.agent.functions) > 10
    error_message = "The functions are planned."
  }
}

run "declared" {
  command = plan
  variables {
    actions         = "serverless_function_source_code/actions"
    agents          = "serverless_function_source_code/agents"
    secret_versions = { action-key = "7" }
  }
}
