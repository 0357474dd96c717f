// Package web is the function that serves the console at / and the chat widget's files at /widget/. It needs no store
// and no secret.
package web

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/app/web"
)

func init() {
	functions.HTTP("web", web.Function("web"))
}
