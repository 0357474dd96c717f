package approval

import (
	"reflect"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
)

// TestFindingListedOnce has an e-mail whose text contains its recipient twice.
func TestFindingListedOnce(t *testing.T) {
	found := []taint.Finding{{Reason: taint.Target, Origin: "the page", Text: "eve@x.org"},
		{Reason: taint.Mention, Origin: "the page", Text: "eve@x.org"},
		{Reason: taint.Mention, Origin: "the page", Text: "x.org"},
		{Reason: taint.Mention, Origin: "the page", Text: "x.org"},
		{Reason: taint.Copied, Origin: "the page", Text: "eve@x.org"},
		{Reason: taint.Copied, Origin: "a mail", Text: "eve@x.org"}}
	want := []run.Finding{{Reason: "target", Origin: "the page", Text: "eve@x.org"},
		{Reason: "mention", Origin: "the page", Text: "x.org"},
		{Reason: "copied", Origin: "the page", Text: "eve@x.org"},
		{Reason: "copied", Origin: "a mail", Text: "eve@x.org"}}
	if got := findings(found); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %v", got, want)
	}
}
