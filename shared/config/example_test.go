package config_test

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/config"
)

// All mistakes are reported at once, with one line for each variable.
func ExampleLoad() {
	env := map[string]string{"STORE": "firestore", "MAX_MODEL_CALLS": "many", "APPROVAL_TTL": "1s"}
	_, err := config.Load(func(name string) string { return env[name] }, config.Store)
	fmt.Println(err)
	// Output:
	// MAX_MODEL_CALLS is "many"; it needs a whole number from 1 to 50
	// APPROVAL_TTL is "1s"; it needs a time from 1m to 30d, such as 90s, 15m, 24h or 7d
	// GOOGLE_CLOUD_PROJECT is not set; it needs the id of the Google Cloud project, because STORE is firestore
}
