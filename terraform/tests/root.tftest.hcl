# Planned with each environment's variable file: go run ./scripts/terraform.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
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

    # TestTerraform looks for these values at the resources that they concern.
    region               = "europe-north1"
    firestore_location   = "nam5"
    firestore_database   = "acme-restored"
    prefix               = "acme"
    runtime              = "go127"
    vpc_connector        = "projects/acme-agent/locations/europe-north1/connectors/out"
    worker_pool          = "projects/acme-ci/locations/europe-north1/workerPools/private"
    binary_authorization = "projects/acme-agent/platforms/cloudRun/signed"
    allowed_origins      = ["https://shop.acme.com"]
    model                = { name = "gemini-of-acme", fallbacks = ["gemini-b", "gemini-c"], choices = ["gemini-d", "gemini-e"] }
    gmail_search         = true
    gmail_modify         = true
    gmail_send_mode      = "direct"
    mcp_issuer           = "https://issuer.acme.com"
    side_effects         = "off"
    retention            = { days = 91, audit_days = 401 }
    settings             = { MAX_MODEL_CALLS = "7" }
    requests_per_minute  = 123
    hold_traffic         = true
    audit_log            = { retention_days = 999 }
    labels               = { team = "trust" }
  }
}
