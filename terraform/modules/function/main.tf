# One Cloud Function (2nd gen): the source, the function, and its permitted caller. The identity is in identity.tf.

locals {
  name = "${var.prefix}-${var.name}"
  sha  = fileexists(var.archive) ? filesha256(var.archive) : ""
}

# The object's name contains the content's hash. A change of the source makes a new object, so the function is deployed
# again. Without a change, it is not.
resource "google_storage_bucket_object" "source" {
  bucket         = var.source_bucket
  name           = "functions/${var.name}/${local.sha}.zip"
  source         = var.archive
  source_md5hash = fileexists(var.archive) ? filemd5(var.archive) : ""
  content_type   = "application/zip"

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [source, detect_md5hash] # another path of the same archive: the name identifies the content
    precondition {
      condition     = fileexists(var.archive)
      error_message = "The archive ${var.archive} does not exist. Build it with: go run ./scripts/package -out dist"
    }
  }
}

resource "google_cloudfunctions2_function" "this" {
  project     = var.project_id
  location    = var.region
  name        = local.name
  description = "Countersign: ${var.name}"
  labels      = merge(var.labels, { function = var.name })

  build_config {
    runtime           = var.runtime
    entry_point       = var.entry_point
    docker_repository = var.docker_repository
    service_account   = var.build_service_account
    worker_pool       = var.worker_pool
    environment_variables = {
      GOOGLE_GOLDFLAGS = "-s -w"
    }
    source {
      storage_source {
        bucket = google_storage_bucket_object.source.bucket
        object = google_storage_bucket_object.source.name
      }
    }
    automatic_update_policy {} # applies patches of the base image without a deployment
  }

  service_config {
    service_account_email            = google_service_account.runtime.email
    available_cpu                    = var.cpu
    available_memory                 = var.memory
    timeout_seconds                  = var.timeout_seconds
    max_instance_request_concurrency = var.concurrency
    min_instance_count               = var.min_instances
    max_instance_count               = var.max_instances
    ingress_settings                 = var.ingress
    all_traffic_on_latest_revision   = !var.hold_traffic
    vpc_connector                    = var.vpc_connector
    vpc_connector_egress_settings    = var.vpc_connector == null ? null : "ALL_TRAFFIC"
    binary_authorization_policy      = var.binary_authorization
    environment_variables            = merge(var.environment, { RELEASE = "${var.release}-${substr(local.sha, 0, 12)}" })

    dynamic "secret_environment_variables" {
      for_each = var.secrets
      iterator = secret
      content {
        key        = secret.key
        project_id = var.project_id
        secret     = secret.value.secret
        version    = secret.value.version
      }
    }
  }

  timeouts {
    create = "20m"
    update = "20m"
  }

  depends_on = [google_secret_manager_secret_iam_member.runtime]
}

# A 2nd gen function is a Cloud Run service, and the invoker role is granted on that service. On the function the API
# answers 400. A recreated function has lost the grant, hence the trigger.
resource "google_cloud_run_v2_service_iam_member" "invoker" {
  project  = var.project_id
  location = var.region
  name     = google_cloudfunctions2_function.this.name
  role     = "roles/run.invoker"
  member   = var.invoker

  lifecycle {
    replace_triggered_by = [google_cloudfunctions2_function.this.id]
  }
}
