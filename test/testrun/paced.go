package main

import (
	"go/ast"
	"strings"
)

// pacedTests finds the tests of a folder that do not say rig.Parallel: what they see depends on what runs beside them.
func pacedTests(dir string) (names []string, err error) {
	return testFunctions(dir, func(fn *ast.FuncDecl) bool { return isTest(fn) && !isParallel(fn) })
}

func isTest(fn *ast.FuncDecl) bool {
	return strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
}

// isParallel reports whether a test calls rig.Parallel itself. That its subtests do says nothing of the test.
func isParallel(fn *ast.FuncDecl) bool {
	for _, s := range fn.Body.List {
		if e, is := s.(*ast.ExprStmt); is {
			if call, is := e.X.(*ast.CallExpr); is {
				if sel, is := call.Fun.(*ast.SelectorExpr); is && sel.Sel.Name == "Parallel" {
					return true
				}
			}
		}
	}
	return false
}
