mock_provider "google" {
  mock_resource "google_service_account" {
    override_during = plan
    defaults        = { member = "serviceAccount:agent-run@acme-prod.iam.gserviceaccount.com", email = "agent-run@acme-prod.iam.gserviceaccount.com" }
  }
}

variables {
  project_id            = "acme-prod"
  region                = "europe-west1"
  prefix                = "agent"
  name                  = "run"
  entry_point           = "run"
  runtime               = "go126"
  archive               = "../../../dist/run.zip"
  release               = "v1"
  source_bucket         = "acme-prod-agent-source"
  docker_repository     = "projects/acme-prod/locations/europe-west1/repositories/agent-functions"
  build_service_account = "projects/acme-prod/serviceAccounts/agent-build@acme-prod.iam.gserviceaccount.com"
  cpu                   = "1"
  memory                = "512Mi"
  timeout_seconds       = 300
  concurrency           = 40
  min_instances         = 0
  max_instances         = 20
  ingress               = "ALLOW_INTERNAL_AND_GCLB"
  invoker               = "allUsers"
  secrets               = { KEY = { secret = "agent-key", version = "3" } }
  roles                 = [{ role = "roles/datastore.user", on = "database" }, { role = "roles/pubsub.publisher", on = "topic" }]
  on                    = { database = "projects/acme-prod/databases/agent-store", topic = "agent-resume", sweeps = "agent-sweep", events = "agent-events", tokens = "key" }
}

run "the_archive_names_the_object" {
  command = plan
  assert {
    condition     = google_storage_bucket_object.source.name == "functions/run/${filesha256(var.archive)}.zip"
    error_message = "A change of the archive must be a change of the object, or the function is not deployed again."
  }
  assert {
    condition     = google_cloudfunctions2_function.this.build_config[0].source[0].storage_source[0].object == google_storage_bucket_object.source.name
    error_message = "The function is built from that object."
  }
  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].environment_variables["RELEASE"] == "v1-${substr(filesha256(var.archive), 0, 12)}"
    error_message = "The function knows its release and its archive."
  }
}

run "it_is_its_own_identity" {
  command = plan
  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].service_account_email == google_service_account.runtime.email && google_service_account.runtime.account_id == "agent-run"
    error_message = "A function runs as the identity that bears its name."
  }
  assert {
    condition     = strcontains(google_project_iam_member.database["roles/datastore.user"].condition[0].expression, "== 'projects/acme-prod/databases/agent-store'")
    error_message = "The database's role is for the one database."
  }
  assert {
    condition     = length(google_project_iam_member.project) == 0 && length(google_pubsub_topic_iam_member.topic) == 1 && length(google_kms_crypto_key_iam_member.tokens) == 0
    error_message = "It has the roles of its parts and no more."
  }
}

run "a_missing_archive_is_refused" {
  command = plan
  variables {
    archive = "nowhere/run.zip"
  }
  expect_failures = [google_storage_bucket_object.source]
}

run "a_function_without_an_entry_is_refused" {
  command = plan
  variables {
    entry_point = ""
  }
  expect_failures = [var.entry_point]
}

run "an_unpinned_secret_is_refused" {
  command = plan
  variables {
    secrets = { KEY = { secret = "agent-key", version = "latest" } }
  }
  expect_failures = [var.secrets]
}

run "everyone_cannot_be_let_in_from_inside_only" {
  command = plan
  variables {
    ingress = "ALLOW_INTERNAL_ONLY"
  }
  expect_failures = [var.invoker]
}

run "one_caller_does_not_open_it_to_the_net" {
  command = plan
  variables {
    ingress = "ALLOW_ALL"
    invoker = "serviceAccount:agent-push@acme-prod.iam.gserviceaccount.com"
  }
  expect_failures = [var.invoker]
}

run "a_name_too_long_for_an_identity_is_refused" {
  command = plan
  variables {
    name = "approvals-resolve-and-some-more"
  }
  expect_failures = [var.name]
}

run "requests_side_by_side_need_a_cpu" {
  command = plan
  variables {
    cpu = "0.5"
  }
  expect_failures = [var.concurrency]
}

run "an_hour_is_the_longest" {
  command = plan
  variables {
    timeout_seconds = 3601
  }
  expect_failures = [var.timeout_seconds]
}

run "fewer_at_most_than_at_least_is_refused" {
  command = plan
  variables {
    min_instances = 30
  }
  expect_failures = [var.max_instances]
}

run "memory_has_a_unit" {
  command = plan
  variables {
    memory = "512"
  }
  expect_failures = [var.memory]
}

run "the_build_names_its_identity_in_full" {
  command = plan
  variables {
    build_service_account = "agent-build@acme-prod.iam.gserviceaccount.com"
  }
  expect_failures = [var.build_service_account]
}

run "an_unknown_ingress_is_refused" {
  command = plan
  variables {
    ingress = "INTERNET"
  }
  expect_failures = [var.ingress]
}

run "a_role_on_nothing_known_is_refused" {
  command = plan
  variables {
    roles = [{ role = "roles/editor", on = "organisation" }]
  }
  expect_failures = [var.roles]
}
