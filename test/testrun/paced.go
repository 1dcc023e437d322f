package main

import (
	"fmt"
	"go/ast"
	"strings"
)

// pacedTests names the tests of a folder that say rig.Paced. The others say rig.Parallel: one that says neither would
// keep all others of its package waiting, and is an error.
func pacedTests(dir string) ([]string, error) {
	var neither []string
	names, err := testFunctions(dir, func(fn *ast.FuncDecl) bool {
		if !isTest(fn) || says(fn, "Parallel") {
			return false
		}
		if !says(fn, "Paced") {
			neither = append(neither, fn.Name.Name)
		}
		return true
	})
	if err == nil && len(neither) > 0 {
		err = fmt.Errorf("tests in %s must say rig.Paced or rig.Parallel: %s", dir, strings.Join(neither, ", "))
	}
	return names, err
}

func isTest(fn *ast.FuncDecl) bool {
	return strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
}

// says reports whether a test calls the rig's function of this name itself. That its subtests do says nothing of it.
func says(fn *ast.FuncDecl, name string) bool {
	for _, s := range fn.Body.List {
		if e, is := s.(*ast.ExprStmt); is {
			if call, is := e.X.(*ast.CallExpr); is {
				if sel, is := call.Fun.(*ast.SelectorExpr); is && sel.Sel.Name == name {
					return true
				}
			}
		}
	}
	return false
}
