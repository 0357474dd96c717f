package octokit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub/octokit"
)

// TestDeviations changes each part of an exchange. Check must find each deviation.
func TestDeviations(t *testing.T) {
	d := octokit.Require(t)
	of := map[string]string{"owner": "o", "repo": "r"}
	exchange := func(target, body string, status int, answer string) fakegithub.Exchange {
		r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		return fakegithub.Exchange{Op: "git/create-blob", Request: r, Body: []byte(body), Status: status,
			Header: http.Header{"Content-Type": {"application/json"}}, Answer: []byte(answer), PathParameters: of}
	}
	const path, body, made = "/repos/o/r/git/blobs", `{"content":"x"}`, `{"sha":"x","url":"https://api.github.com/x"}`
	if err := d.Check(exchange(path, body, 201, made)); err != nil {
		t.Errorf("a good exchange: %v", err)
	}
	for name, e := range map[string]fakegithub.Exchange{
		"a parameter":       exchange(path+"?unheard=1", body, 201, made),
		"a body":            exchange(path, `{"content":1}`, 201, made),
		"no body":           exchange(path, `{}`, 201, made),
		"a status":          exchange(path, body, 206, made),
		"an answer":         exchange(path, body, 201, `{"sha":1,"url":"https://api.github.com/x"}`),
		"an incomplete one": exchange(path, body, 201, `{"sha":"x"}`),
		"an error's answer": exchange(path, body, 404, `[]`),
	} {
		if d.Check(e) == nil {
			t.Errorf("%s that is not described was not found", name)
		}
	}
}
