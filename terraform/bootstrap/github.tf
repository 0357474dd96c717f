# Two identities for GitHub workflows, without keys. One plans on any branch: it reads the configuration of resources, never
# their contents. The other applies from the protected environment.

locals {
  github = var.github == null ? {} : { this = var.github }
  pool   = one([for p in google_iam_workload_identity_pool.github : "principalSet://iam.googleapis.com/${p.name}"])
  workflows = var.github == null ? {} : {
    plan = {
      member = "${local.pool}/attribute.repository_id/${var.github.repository_id}"
      roles  = []
      state  = "roles/storage.objectViewer" # write access would let anyone who can push a branch rewrite the state
    }
    apply = {
      member = "${local.pool}/attribute.environment/${var.github.environment}"
      roles = [for r in [
        "artifactregistry.admin", "cloudfunctions.admin", "cloudkms.admin", "cloudscheduler.admin", "compute.loadBalancerAdmin", "compute.securityAdmin",
        "datastore.owner", "firebaserules.admin", "iam.serviceAccountAdmin", "iam.serviceAccountUser", "logging.admin", "monitoring.admin", "pubsub.admin",
        "run.admin", "secretmanager.admin", "serviceusage.serviceUsageConsumer", "storage.admin",
      ] : "roles/${r}"]
      state = "roles/storage.objectUser"
    }
  }
  # The permissions to read each type of resource. The basic viewer role, or datastore.viewer, could read users' content.
  plan_permissions = distinct(concat(["serviceusage.services.use"], flatten(values(jsondecode(file("${path.module}/../../infra/plan-permissions.json"))))))
  # The roles that the environment grants on the whole project. The applying identity can grant and revoke only these.
  grants = distinct(flatten([for p in values(local.parts) : [for r in try(p.roles, []) : r.role if contains(["project", "database"], r.on)]]))
}

resource "google_iam_workload_identity_pool" "github" {
  for_each = local.github

  project                   = var.project_id
  workload_identity_pool_id = "${var.prefix}-github"
  depends_on                = [google_project_service.this]
}

# Numbers, because a name can be given up and registered by somebody else. Workflows that a fork's pull request starts with
# this repository's rights are excluded.
resource "google_iam_workload_identity_pool_provider" "github" {
  for_each = local.github

  project                            = var.project_id
  workload_identity_pool_id          = google_iam_workload_identity_pool.github[each.key].workload_identity_pool_id
  workload_identity_pool_provider_id = "github"
  attribute_mapping = {
    "google.subject"          = "assertion.sub"
    "attribute.repository_id" = "assertion.repository_id"
    "attribute.environment"   = "assertion.environment"
  }
  attribute_condition = "assertion.repository_owner_id == '${each.value.owner_id}' && assertion.repository_id == '${each.value.repository_id}' && assertion.event_name != 'pull_request_target'"
  oidc {
    issuer_uri = "https://token.actions.githubusercontent.com"
  }
}

resource "google_service_account" "github" {
  for_each = local.workflows

  project      = var.project_id
  account_id   = "${var.prefix}-tf-${each.key}"
  display_name = "Countersign: terraform ${each.key} from GitHub"
  depends_on   = [google_project_service.this]
}

resource "google_service_account_iam_member" "github" {
  for_each = local.workflows

  service_account_id = google_service_account.github[each.key].name
  role               = "roles/iam.workloadIdentityUser"
  member             = each.value.member
}

resource "google_project_iam_member" "github" {
  for_each = merge([for name, w in local.workflows : { for r in w.roles : "${name} ${r}" => { name = name, role = r } }]...)

  project = var.project_id
  role    = each.value.role
  member  = google_service_account.github[each.value.name].member
}

resource "google_project_iam_member" "apply_grants" {
  for_each = local.github

  project = var.project_id
  role    = "roles/resourcemanager.projectIamAdmin"
  member  = google_service_account.github["apply"].member
  condition {
    title      = "the functions' roles only"
    expression = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([${join(", ", [for r in local.grants : "'${r}'"])}])"
  }
}

resource "google_project_iam_custom_role" "plan" {
  for_each = local.github

  project     = var.project_id
  role_id     = replace("${var.prefix}_tf_plan", "-", "_")
  title       = "Countersign: terraform plan"
  description = "Reads the configuration of the resources that Terraform manages."
  permissions = local.plan_permissions
  depends_on  = [google_project_service.this]
}

resource "google_project_iam_member" "plan" {
  for_each = google_project_iam_custom_role.plan

  project = var.project_id
  role    = "projects/${var.project_id}/roles/${each.value.role_id}"
  member  = google_service_account.github["plan"].member
}

# Planning can read the objects that are archives. The grant below lets it read the state.
resource "google_project_iam_member" "plan_archives" {
  for_each = local.github

  project = var.project_id
  role    = "roles/storage.objectViewer"
  member  = google_service_account.github["plan"].member
  condition {
    title      = "archives only"
    expression = "resource.name.startsWith('projects/_/buckets/${var.project_id}-${var.prefix}-source/')"
  }
}

# A plan takes no lock (-lock=false), because a lock is a write.
resource "google_storage_bucket_iam_member" "state" {
  for_each = local.workflows

  bucket = google_storage_bucket.state.name
  role   = each.value.state
  member = google_service_account.github[each.key].member
}
