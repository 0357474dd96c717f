// Package pins holds the module versions while the rooms are being built.
package pins

import (
	_ "cloud.google.com/go/firestore"
	_ "cloud.google.com/go/pubsub/v2"
	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	_ "github.com/cenkalti/backoff/v5"
	_ "github.com/coreos/go-oidc/v3/oidc"
	_ "github.com/emersion/go-message/mail"
	_ "github.com/go-jose/go-jose/v4"
	_ "github.com/rs/cors"
	_ "github.com/sethvargo/go-envconfig"
	_ "github.com/tink-crypto/tink-go-gcpkms/v2/integration/gcpkms"
	_ "github.com/tink-crypto/tink-go/v2/aead"
	_ "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	_ "go.opentelemetry.io/otel"
	_ "go.uber.org/goleak"
	_ "golang.org/x/oauth2"
	_ "google.golang.org/api/calendar/v3"
	_ "google.golang.org/api/gmail/v1"
	_ "google.golang.org/genai"
	_ "modernc.org/sqlite"
	_ "pgregory.net/rapid"
)
