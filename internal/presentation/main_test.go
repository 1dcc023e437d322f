package presentation_test

import (
	"testing"

	"millrace/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
