package main

import (
	"testing"

	"github.com/countersign-run/countersign/scripts/emulators"
	"github.com/countersign-run/countersign/shared/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m, emulators.End) }
