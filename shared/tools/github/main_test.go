package github_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

func TestMain(m *testing.M) {
	realpart.AtOnce(4)
	leaktest.Main(m)
}
