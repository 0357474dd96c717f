package fetch

import (
	"context"
	"net/url"

	"github.com/countersign-run/countersign/shared/tools/web"
)

// PageOf reads the page in a response, for fuzzing.
func PageOf(address, contentType string, body []byte) (web.Page, error) {
	u, err := url.Parse(address)
	if err != nil {
		return web.Page{}, err
	}
	return pageOf(context.Background(), u, contentType, body)
}
