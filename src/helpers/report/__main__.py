from helpers.report.line import main

main()
