mock_provider "google" {}

variables {
  project_id = "acme-prod"
  github     = { owner_id = "1", repository_id = "22", environment = "production" }
  budget     = { billing_account = "012345-ABCDEF-678901", currency = "EUR", monthly = 200, emails = ["money@acme.com"] }
}

run "everything" {
  assert {
    condition     = google_storage_bucket.state.versioning[0].enabled && google_storage_bucket.state.public_access_prevention == "enforced"
    error_message = "The state is versioned and never public."
  }
  assert {
    condition     = strcontains(google_iam_workload_identity_pool_provider.github["this"].attribute_condition, "repository_owner_id == '1'") && strcontains(google_iam_workload_identity_pool_provider.github["this"].attribute_condition, "repository_id == '22'") && strcontains(google_iam_workload_identity_pool_provider.github["this"].attribute_condition, "event_name != 'pull_request_target'")
    error_message = "GitHub's repository is known by its numbers, and forks do not come in through pull_request_target."
  }
  assert {
    condition     = endswith(google_service_account_iam_member.github["apply"].member, "/attribute.environment/production")
    error_message = "Only the protected environment applies."
  }
  assert {
    condition     = can(regex("^api\\.getAttribute\\('iam\\.googleapis\\.com/modifiedGrantsByRole', \\[\\]\\)\\.hasOnly\\(\\['roles/[a-zA-Z./', ]+'\\]\\)$", google_project_iam_member.apply_grants["this"].condition[0].expression)) && !can(regex("roles/(owner|editor|viewer)|[aA]dmin", google_project_iam_member.apply_grants["this"].condition[0].expression))
    error_message = "Whoever applies may grant the functions' roles only."
  }
  assert {
    condition     = alltrue([for m in values(google_project_iam_member.github) : !contains(["roles/owner", "roles/editor"], m.role)])
    error_message = "No workflow owns or edits the whole project."
  }
  assert {
    condition     = alltrue([for m in values(google_project_iam_member.github) : !contains(["roles/viewer", "roles/browser"], m.role)])
    error_message = "No workflow reads the whole project, with all that users have in it."
  }
  assert {
    condition     = google_storage_bucket_iam_member.state["plan"].role == "roles/storage.objectViewer" && google_storage_bucket_iam_member.state["apply"].role == "roles/storage.objectUser"
    error_message = "Any branch may plan, so planning reads the state and never writes it."
  }
  assert {
    condition     = !anytrue([for m in values(google_project_iam_member.github) : m.member == google_service_account.github["plan"].member])
    error_message = "Planning has its own role and no other on the project but the archives."
  }
  assert {
    condition     = alltrue([for p in google_project_iam_custom_role.plan["this"].permissions : can(regex("^[a-zA-Z]+\\.[a-zA-Z]+\\.(get|getIamPolicy|getMetadata|use)$", p))])
    error_message = "Planning reads, and does nothing else."
  }
  assert {
    condition     = length(setintersection(google_project_iam_custom_role.plan["this"].permissions, ["datastore.entities.get", "secretmanager.versions.access", "storage.objects.get", "pubsub.subscriptions.consume", "logging.logEntries.list"])) == 0
    error_message = "Planning reads nothing of what users have."
  }
  assert {
    condition     = google_project_iam_member.plan_archives["this"].condition[0].expression == "resource.name.startsWith('projects/_/buckets/acme-prod-agent-source/')"
    error_message = "Of objects, planning reads the archives only."
  }
  assert {
    condition     = toset(keys(output.secrets)) == toset(["action-key", "chat-key", "docker-certs", "gemini-api-key", "github-client-secret", "mcp-secrets", "oauth-client-secret", "otlp-headers", "receipt-key", "smtp-url", "vapid-key", "webhook-keys"])
    error_message = "Every secret of infra/functions.json has a place, and a command for its value."
  }
  assert {
    condition     = alltrue([for n in range(1, 9) : strcontains(output.left_to_do, "\n${n}. ") || startswith(output.left_to_do, "${n}. ")]) && !strcontains(output.left_to_do, "\n9. ") && !strcontains(output.left_to_do, "prefix = \"")
    error_message = "A person has eight steps left to do."
  }
  assert {
    condition     = length(regexall("acme-prod", output.left_to_do)) >= 6 && strcontains(output.left_to_do, "versions add agent-chat-key") && strcontains(output.left_to_do, "versions add agent-oauth-client-secret")
    error_message = "The steps name the project and the secrets that every deployment needs."
  }
}

run "without_github_and_budget" {
  command = plan
  variables {
    github = null
    budget = null
  }
  assert {
    condition     = length(google_service_account.github) == 0 && length(google_billing_budget.monthly) == 0 && output.github == null
    error_message = "Without them nobody signs in from outside, and nothing is billed against."
  }
}

run "names_instead_of_numbers_are_refused" {
  command = plan
  variables {
    github = { owner_id = "acme", repository_id = "countersign", environment = "production" }
  }
  expect_failures = [var.github]
}

run "an_environment_that_is_a_pattern_is_refused" {
  command = plan
  variables {
    github = { owner_id = "1", repository_id = "22", environment = "*" }
  }
  expect_failures = [var.github]
}

run "a_billing_account_by_name_is_refused" {
  command = plan
  variables {
    budget = { billing_account = "ours", currency = "EUR", monthly = 200 }
  }
  expect_failures = [var.budget]
}

run "a_project_by_its_title_is_refused" {
  command = plan
  variables {
    project_id = "Acme Production"
  }
  expect_failures = [var.project_id]
}

run "a_long_prefix_is_refused" {
  command = plan
  variables {
    prefix = "countersign-agent"
  }
  expect_failures = [var.prefix]
}
